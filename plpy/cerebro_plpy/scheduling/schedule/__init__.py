"""Model Hopper Parallelism: which configuration visits which segment next."""

"""Templates of boosted trees."""

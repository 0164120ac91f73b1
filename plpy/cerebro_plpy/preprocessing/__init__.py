"""Raw columns as inputs of a network: recipes, learned from training rows, and their use."""

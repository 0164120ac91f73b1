"""Model hopping, search and planning as pure functions, without a database and without a clock."""

"""Architecture JSON as data: allowed classes, sizes, shapes."""

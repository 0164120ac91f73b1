"""Values of columns as SQL: families of types, texts, numbers, scales."""

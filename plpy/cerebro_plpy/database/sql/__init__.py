"""SQL text: identifiers, literals, JSON, statements by name."""

"""What `cerebro-db check` looks at, from the server down to the machines of a cluster."""

"""What a trainer does for each request; the page on the wire protocol has them all."""

"""Search rules: which configurations continue, pause, stop or are cloned."""

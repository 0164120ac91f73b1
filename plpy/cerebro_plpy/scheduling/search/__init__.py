"""Search rules: decisions on configurations that continue, pause, stop or are cloned."""

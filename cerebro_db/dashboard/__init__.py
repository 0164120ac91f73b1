"""Pages in the browser that show runs and models, and train."""

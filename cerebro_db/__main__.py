"""So that `python -I -m cerebro_db` works where the script cerebro-db has no path, as for another system user."""

from cerebro_db.cli import main

if __name__ == "__main__":
    main()

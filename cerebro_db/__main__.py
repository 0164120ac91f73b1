"""Entry point of `python -I -m cerebro_db`.

It replaces the script `cerebro-db` for a system user who cannot reach the path of that script.
"""

from cerebro_db.cli import main

if __name__ == "__main__":
    main()

"""Lets `python -I -m cerebro_db` stand for the script, whose path another system user need not
reach.
"""

from cerebro_db.cli import main

if __name__ == "__main__":
    main()

"""``python -m distreduce.cli``: the command ``distreduce``."""

from distreduce.cli.main import main

if __name__ == "__main__":
    main()

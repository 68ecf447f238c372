"""``python -m synorama`` is the command ``synorama``."""

from synorama.cli import main

if __name__ == "__main__":
    main()

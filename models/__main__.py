"""``python -m models``: write the generated files of all folders anew.

The tests make them again in memory and compare, so that they cannot grow stale.
"""

from models.generate import FOLDER, files

if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(name)

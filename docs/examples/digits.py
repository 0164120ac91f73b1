"""Handwritten digits as PNG files in a column of bytea: which digit is it?

The files are made of the 1,797 scans that scikit-learn ships, by pillow. Any PNG or JPEG files do:
they are decoded beside the database, in the process that trains. Run it with the URL of a database:
python digits.py postgresql://…
"""

import io
import sys

import psycopg2
from PIL import Image
from psycopg2.extras import execute_values
from sklearn.datasets import load_digits

import cerebro_db

scans = load_digits()


def png(pixels):
    """A scan of 8 x 8 points from 0 to 16, as a grey PNG file."""
    file = io.BytesIO()
    Image.fromarray((pixels * 15).astype("uint8")).save(file, "PNG")
    return file.getvalue()


connection = psycopg2.connect(sys.argv[1])
with connection, connection.cursor() as cursor:
    cursor.execute("CREATE TABLE scans (id integer PRIMARY KEY, file bytea, digit integer)")
    rows = enumerate(zip(scans.images, scans.target, strict=True))
    execute_values(
        cursor,
        "INSERT INTO scans VALUES %s",
        [(n, png(image), int(digit)) for n, (image, digit) in rows],
    )
    cursor.execute("CREATE VIEW scans_known AS SELECT * FROM scans WHERE id % 6 > 0")
    cursor.execute("CREATE VIEW scans_new AS SELECT * FROM scans WHERE id % 6 = 0")
connection.close()

with cerebro_db.connect(sys.argv[1]) as session:
    # What the columns are taken for: files that begin as PNG files do are images.
    for line in session.plan("scans_known", "digit", columns="file"):
        if line["section"] == "column":
            print(line["name"], "is taken for", line["what"])

    best, *_ = session.train(
        "scans_known",
        "digit",
        model="digits",
        columns="file",
        models=["cnn"],
        configs=1,
        epochs=8,
        seed=1,
    )
    print(best.template, "with accuracy > 0.9:", best.validation > 0.9)

    # Files that the network has never seen.
    predictions = session.predict("digits", "scans_new", "id")
    right = sum(int(p["prediction"]) == scans.target[int(p["id"])] for p in predictions)
    print(
        len(predictions), "predicted, more than nine of ten right:", right > 0.9 * len(predictions)
    )

    # A new file on its way into the database is predicted by one call, too.
    file = "\\x" + png(scans.images[0]).hex()
    print("the first one is a", session.predict_row("digits", {"file": file})["prediction"])

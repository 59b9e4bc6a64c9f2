"""``kraft-wire pipeline report``: one HTML page about the clusters of a lake, made with pyarrow and without
Spark.

``figures.py`` adds up a cluster's tables, a batch at a time. ``section.py`` and ``page.py`` present them.
Plots are SVG made by hand: text stays text, every mark has a tooltip, and both colour schemes work. The page
is a tree of elements until it is written, so that no name in the data can become markup.
"""

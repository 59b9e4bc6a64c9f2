"""Play the same script of requests to Java's controller and to ours, and compare what they answer and write.

``steps`` are the requests, in names that mean the same on both sides; ``script`` draws them from a seed.
``player`` starts the two controllers, sends each step to both and reads what each has written for it.
``forms`` gives answers and records a form that can be compared. ``rules`` are the differences that may be,
each with its reason; anything else is a difference that needs an explanation. ``shrink`` finds the steps that
matter, and ``tally`` counts APIs and errors for the table in ``docs/behaviour.md``.
"""

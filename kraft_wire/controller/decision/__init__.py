"""The parts that every decision of the controller shares: its inputs, its result, and the table of APIs."""

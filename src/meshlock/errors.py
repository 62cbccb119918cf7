"""What meshlock raises at whoever asked for it; the command line prints the text and exits 2."""


class Refused(ValueError):
    """This set-up cannot be served; the text is one sentence that says what to do."""

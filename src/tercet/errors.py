"""What can go wrong, named: every error says what must hold, what came, and what to do next."""


class TercetError(Exception):
    """The base of every error that tercet raises on purpose."""


class InputError(TercetError, ValueError):
    """A text, number or option that a scorer cannot use."""


class DataError(TercetError, ValueError):
    """A row of a data file that cannot be read; the message names the file and the line."""


class ModelError(TercetError):
    """A model folder that is missing, broken, unsafe or of a kind tercet does not know."""


class OutputError(TercetError):
    """A path that cannot be written, most often because something is already there."""


class MissingExtraError(TercetError, ImportError):
    """An optional dependency that is not installed; the message holds its ``pip install`` line."""


class TrainingError(TercetError):
    """A training that cannot go on; its last checkpoint is kept."""


class InterruptedRunError(TercetError):
    """A training that was asked to stop, and left a checkpoint to go on from."""


class BrokenIndexError(TercetError):
    """Files of an index that are missing, cut short or changed; ``tercet index repair`` saves the rest."""


class StaleIndexError(TercetError):
    """An index that another model made; the message holds the command that builds it anew."""


class LockedIndexError(TercetError):
    """An index that another process is writing to."""


class TruncationWarning(UserWarning):
    """Some texts were longer than the model reads; given once per scorer."""

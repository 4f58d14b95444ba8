"""Exceptions. Every message says what must hold, what came instead, and what to do next."""


class TercetError(Exception):
    """Base class of all exceptions raised by tercet."""


class InputError(TercetError, ValueError):
    """An argument or setting has an invalid value."""


class DeviceMemoryError(InputError):
    """A GPU has too little free memory; the message says how much is needed."""


class UnmatchedConditionError(InputError):
    """No candidate has a column, or a value, that a condition of a search names.

    ``missing_column`` is the column that no candidate has; None if the column exists.
    """

    def __init__(self, message: str, *, missing_column: str | None = None) -> None:
        super().__init__(message)
        self.missing_column = missing_column


class DataError(TercetError, ValueError):
    """A row of a data file cannot be used; the message names the file and the line."""


class FileError(TercetError):
    """A JSON or TOML file is missing, unreadable or malformed."""


class ModelError(TercetError):
    """A model folder is missing, incomplete, unsafe or of an unknown kind, or a model computes NaN."""


class UnsupportedModelError(ModelError):
    """A runtime cannot run the model, and another one can."""


class OutputError(TercetError):
    """A path cannot be written, usually because it exists already, or a value cannot be written as JSON."""


class MissingExtraError(TercetError, ImportError):
    """An optional dependency is not installed; the message contains its ``pip install`` command."""


class TrainingError(TercetError):
    """Training cannot continue; its last checkpoint is kept."""


class InterruptedRunError(TercetError):
    """Training or a build was interrupted and can be resumed."""


class BrokenIndexError(TercetError):
    """Files of an index are missing, truncated or modified; ``tercet index repair`` restores what it can."""


class StaleIndexError(TercetError):
    """The index was built by another model; the message contains the command that rebuilds it."""


class LockedIndexError(TercetError):
    """Another process is writing to the index."""


class DatabaseError(TercetError):
    """A database that holds an index cannot be reached, refuses, or takes too long."""


class WorkerError(TercetError):
    """The workers of a bulk job cannot be reached, or die at the same rows again and again."""


class OverloadedError(TercetError):
    """The server has more work than it may queue; ``retry_after`` says in how many seconds to try again."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServerError(TercetError):
    """A server refused a request, failed, or cannot be reached.

    ``status`` is the HTTP status, None without an answer. ``type`` is the short name of the problem, such as
    ``unknown_model``. ``limit`` is the setting of the server that was exceeded, ``param`` the part of the
    request that is wrong; ``request_id`` finds the request in the server's log.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        status: int | None = None,
        request_id: str | None = None,
        limit: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.type, self.request_id = status, kind, request_id
        self.limit, self.param = limit, param


class CheckpointWarning(UserWarning):
    """A checkpoint is unfinished or damaged, and training continues from an older one."""


class CompatibilityWarning(UserWarning):
    """A saved model does not load in sentence-transformers, or scores differently there."""


class NetworkWarning(UserWarning):
    """The Hugging Face hub is about to be contacted, for a model or data set that is not on this machine."""


class SlowDeviceWarning(UserWarning):
    """A GPU is slower than it could be, because something that would speed it up does not work there."""


class SkippedRowsWarning(UserWarning):
    """Rows of a file were skipped because cells are empty, as the caller asked for."""


class TruncationWarning(UserWarning):
    """Some texts are longer than the model's maximum length. Issued once per scorer."""


class UnreadableTextWarning(UserWarning):
    """Some texts are in a script that the model's vocabulary cannot read. Issued once per scorer."""

"""Optional dependencies, and the extra to install if one is missing."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, extra: str) -> Any:
    """Import a module of an extra.

    Raises ImportError that names the extra where the module is missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"{module} is missing ({error}); install it: pip install 'ebbtide[{extra}]'"
        raise ImportError(message, name=module) from error

"""What the generated models are built on.

A daemon may be younger than this package: members that it adds are kept (`model_extra`), and a value that it adds to a list
of words arrives as the plain string that it is, though its type names the words known here.
"""

from pydantic import BaseModel, ConfigDict, GetPydanticSchema
from pydantic_core import core_schema

__all__ = ["OPEN", "Model"]


class Model(BaseModel):
    """A value of the daemon's. Attributes are in snake_case, the names on the wire are their aliases."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


OPEN = GetPydanticSchema(lambda _type, _handler: core_schema.str_schema())
"""Marks a list of words that later versions may add to: any string is read."""

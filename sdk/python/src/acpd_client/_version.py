"""The version of this package: that of acpd."""

__version__ = "0.1.0"

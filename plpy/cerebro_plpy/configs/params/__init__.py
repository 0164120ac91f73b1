"""Compile and fit parameters of one configuration, parsed from text."""

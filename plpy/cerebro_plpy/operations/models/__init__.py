"""Calls about models by name: deploy, register, grant, refresh, reproduce."""

"""Calls with MADlib's signatures: pack a table, train configurations."""

"""Causes of failures, from evidence: structured facts first, text second. Nothing here looks or tries."""

"""Automatic uploads: tokens of programs that send files, and their pages."""

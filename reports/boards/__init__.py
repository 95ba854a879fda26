"""Boards: tiles of a study's figures that a reader arranges, names and shares. Files are made in exports.

Imports the subjects of the figures; share links of boards are in sharing.
"""

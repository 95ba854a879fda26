"""The settings of the product with encryption switched off, for the test that must find what it wrote.

The product has no such switch.
"""

from mobility.settings import *  # noqa: F403
from mobility.vault import sealing


class NoCipher:
    """Takes the place of AES-GCM and writes what it gets, with room for a tag."""

    def __init__(self, _key):
        pass

    def encrypt(self, _nonce, data, _context):
        return bytes(data) + bytes(sealing.TAG_BYTES)

    def encrypt_into(self, _nonce, data, _context, buffer):
        buffer[:] = self.encrypt(_nonce, data, _context)

    def decrypt(self, _nonce, data, _context):
        return bytes(data[: -sealing.TAG_BYTES])

    def decrypt_into(self, _nonce, data, _context, buffer):
        buffer[:] = self.decrypt(_nonce, data, _context)


sealing.AESGCM = NoCipher

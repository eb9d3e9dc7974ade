"""What a system named is shown, and commands nothing: control characters are spelt out wherever text is shown.

An id from somebody's log may hold `ESC ]0;title BEL`, or a character that turns the direction of writing.
"""

from __future__ import annotations

_CONTROLS = [code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
_TURNING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SPELT = {code: f"\\x{code:02x}" for code in _CONTROLS} | {
    code: f"\\u{code:04x}" for code in _TURNING
}
_IN_JSON = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_TURNING)}


def visible(words: str) -> str:
    """The text with its control characters spelt out; line ends and tabs stay."""
    return words.translate(_SPELT)


def visible_json(document: str) -> str:
    """A JSON document that holds the same and no control character: those of its texts are escaped."""
    return document.translate(_IN_JSON)

"""Measuring a pair against plain decoding, and the speed-up that theory predicts beside it."""

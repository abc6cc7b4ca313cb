"""Which operation of two runs pairs with which, and how far their waits may differ. Pure: plain values in and out."""

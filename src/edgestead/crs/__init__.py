"""SecLang text to typed rules and a catalogue of them. No I/O."""

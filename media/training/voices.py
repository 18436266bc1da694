"""Makes the voices that the network for noisy channels is trained on: clips of single talkers at 16 kHz, a folder a voice.

Synthesizers say sentences that no test says; recorded prompts are taken as they are, but for those that a test speaks. Each
voice is also read slower and faster, as another voice. Those in `held` are never trained on.
"""

import argparse
import random
import subprocess
from pathlib import Path

# Sentences whose words are drawn, and such as stand for themselves; none is said in a test.
PATTERNS = """
I need to {do} my {thing} before {day}.|The {thing} came on {day}, but it was {bad}.|Is there anything free on {day} at {hour}?
My name is {name}, and the number is {digits}.|Can I speak to {name}, please?|Well, {day} would be better for me.
It should be {digits}, but the letter says {digits}.|Hi, this is {name} from {town}.|How much is the {thing} to {town}?
No, not {day}, I said {day} at {hour}.|Do you have a {thing} that is not {bad}?|I have waited since {hour} for the {thing}.
My daughter {name} wants to {do} the {thing} as soon as she can.|{digits}.|At {hour}.|{name}.|On {day}, I think.
We moved to {town} in {month}, so please {do} the {thing} there.|And then {name} told me that the {thing} is {bad}.
""".replace("\n", "|").strip("|").split("|")
WORDS = {
    "do": "cancel|check|send|repair|extend|renew|collect|book|change|return".split("|"),
    "thing": "ticket|contract|parcel|policy|invoice|passport|car|room|phone|washing machine|prescription|table".split("|"),
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Sunday|the fifth of May|the last weekend|tomorrow".split("|"),
    "bad": "broken|much too late|empty|the wrong size|wet|far too small|somebody else's".split("|"),
    "hour": "half past eight|nine|ten fifteen|noon|quarter to four|six in the evening|seven thirty".split("|"),
    "name": "Anna Fischer|Joe|Mister Wong|Susan Bright|Ted Oakley|Maria|Victor Hale|Fatima|Chuck".split("|"),
    "town": "London|Boston|Cork|Paris|Phoenix|Zurich|Bath|Chicago|Vienna".split("|"),
    "month": "January|March|April|July|August|October|December".split("|"),
    "digits": "one two|three eight five|zero six six nine|double five two|eight thousand|seven three zero four two".split("|"),
}
SHORT = ("Yes.|Okay.|Sure.|Right.|Maybe.|Nope.|Not now.|Yeah.|Hello?|Of course.|I see.|Goodbye.|Sorry?|What?|Fine.|Two.|Who?"
         "|No thanks.|Oh.|Stop.|Wait.|Good.|Never.|Hm.|Go on.").split("|")
TEST_PROMPTS = ["im-sorry", "pls-hold-while-try", "cannot-complete-as-dialed", "vm-intro", "queue-thankyou", "vm-goodbye"]

# Languages and variants of espeak-ng; recorded voices as folders below a root, with a part of the names of their files.
ESPEAK = ["en-us", "en-us+m2", "en-us+f2", "en-us+m7", "en-us+f4", "en-us+klatt2", "en-gb", "en-gb+f3", "en-gb+m3",
          "en-gb-scotland+f1", "en-gb-x-rp+m1", "de", "de+f2", "de+m5", "fr", "fr+m4", "fr+f5", "es+m6", "es-419+f1", "it+m1",
          "it+f3", "nl+m8", "pl+f2", "ru+m3", "sv+f4", "tr+m2", "hu+f1", "da+m4", "cs+f5", "en-us+croak", "en-us+whisper",
          "en-029+m5", "en-in+f2", "ro+m7", "el+f3", "pt+m1", "pt-br+f4", "fi+m6"]
ESPEAK_HELD = ["en-us+m1", "en-gb+f5", "es+f2", "de+m8", "sk+m4"]
FLITE = ["slt", "rms", "awb", "kal16", "kal"]
RECORDED = {
    "allison": ("asterisk/sounds/en_US_f_Allison", "*"), "june": ("asterisk/sounds/fr_CA_f_June", "*"),
    "allison-es": ("asterisk/sounds/es_MX_f_Allison", "*"), "carlo": ("asterisk/sounds/it_IT_m_Carlo", "*"),
    "menardi": ("asterisk/sounds/it_IT_f_Menardi", "*"), "armelle": ("asterisk/sounds/fr", "*"),
    "colombia": ("asterisk/sounds/es", "*"), "fish-cs-m": ("games/fillets-ng/sound", "cs/*-m-*"),
    "fish-cs-v": ("games/fillets-ng/sound", "cs/*-v-*"),
}
RECORDED_HELD = {"allison": RECORDED["allison"], "russian": ("asterisk/sounds/ru_RU_f_IvrvoiceRU", "*"), "fish-nl-m": ("games/fillets-ng/sound", "nl/*-m-*"),
                 "fish-nl-v": ("games/fillets-ng/sound", "nl/*-v-*")}
HELD_PROMPTS = {"asterisk/sounds/en_US_f_Allison": 60}
SENTENCES = 150
MOST_CLIPS = 300
BYTES = (16_000, 330_000)  # Half a second to ten.


def sentences(chance, count):
    """A fifth of them are short; which ones, `chance` says."""
    def one():
        text = chance.choice(SHORT) if chance.random() < 0.2 else chance.choice(PATTERNS)
        while "{" in text:
            before, rest = text.split("{", 1)
            slot, after = rest.split("}", 1)
            text = before + chance.choice(WORDS[slot]) + after
        return text
    return [one() for _ in range(count)]


def run(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def convert(source, target, *effects):
    """To 16 kHz mono, with effects of sox; a file that sox cannot read is left out."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        run("sox", source, "-r", 16_000, "-c", 1, "-b", 16, target, *effects)
    except subprocess.CalledProcessError:
        target.unlink(missing_ok=True)


def spoken(out, voice, chance, command, count=SENTENCES):
    """What a synthesizer says: `command` of a text and a file writes it."""
    made = out / "said.wav"
    for n, text in enumerate(sentences(chance, count)):
        run(*command(text, made))
        convert(made, out / voice / f"{n:03}.wav")
    made.unlink()


def recorded(out, voice, chance, roots, part, pattern, pace, held):
    """Prompts of a person, `pace` times as fast and as high; of the tests' own voice the first ones are held out."""
    files = sorted(path for root in roots for path in (root / part).rglob(pattern)
                   if path.suffix in (".wav", ".gsm", ".ogg") and path.stem not in TEST_PROMPTS
                   and (part != "asterisk/sounds/es" or "es_MX" not in str(path)))
    chance.shuffle(files)
    if part in HELD_PROMPTS:
        files = files[:HELD_PROMPTS[part]] if held else files[HELD_PROMPTS[part]:]
    kept = 0
    for path in files:
        target = out / voice / f"{kept:03}.wav"
        convert(path, target, "speed", f"{pace}")
        if target.exists() and BYTES[0] <= target.stat().st_size <= BYTES[1]:
            kept += 1
        else:
            target.unlink(missing_ok=True)
        if kept == MOST_CLIPS:
            break


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--roots", type=Path, nargs="+", default=[Path("/usr/share")], help="where recordings lie")
    args = parser.parse_args()
    for part, held in (("train", False), ("held", True)):
        out = args.out / part
        out.mkdir(parents=True, exist_ok=True)
        for voice in ESPEAK_HELD if held else ESPEAK:
            chance = random.Random(voice)
            speed = str(chance.choice([140, 160, 175, 190, 215]))
            spoken(out, f"espeak-{voice}", chance, lambda text, to: ("espeak-ng", "-v", voice, "-s", speed, "-w", to, text))
        for voice in FLITE:
            # The tests' own voices are held out with other sentences.
            for name, stretch in [("held", 1.0)] if held else [("plain", 1.0), ("slow", 1.25), ("fast", 0.85)]:
                chance = random.Random(f"{voice} {name}")
                pace = ("--setf", f"duration_stretch={stretch}")
                spoken(out, f"flite-{voice}-{name}", chance, lambda text, to: ("flite", "-voice", voice, *pace, "-t", text, "-o", to))
        for voice, (folder, pattern) in (RECORDED_HELD if held else RECORDED).items():
            for pace in (1.0,) if held else (1.0, 0.88, 1.14):
                recorded(out, f"{voice}-{pace}", random.Random(voice), args.roots, folder, pattern, pace, held)


if __name__ == "__main__":
    main()

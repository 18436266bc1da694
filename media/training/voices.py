"""Makes the voices that the network for noisy channels is trained on: clips of single talkers, a folder a voice.

Synthesizers say sentences that no test says, and words of a dictionary in any order; recordings are taken as they are, but for
the prompts that a test speaks. Voices of flite and of prompts are also read slower and faster, as other voices. Those in `held`
are never trained on.
"""

import argparse
import random
import shutil
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
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
# Single words and rows of them say more sounds than the sentences do.
DICTIONARY = Path("/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict")
TEST_PROMPTS = ["im-sorry", "pls-hold-while-try", "cannot-complete-as-dialed", "vm-intro", "queue-thankyou", "vm-goodbye"]

# Languages and variants of espeak-ng; recorded voices as folders below a root, with a part of the names of their files.
ESPEAK = ["en-us", "en-us+m2", "en-us+f2", "en-us+m7", "en-us+f4", "en-us+klatt2", "en-gb", "en-gb+f3", "en-gb+m3",
          "en-gb-scotland+f1", "en-gb-x-rp+m1", "de", "de+f2", "de+m5", "fr", "fr+m4", "fr+f5", "es+m6", "es-419+f1", "it+m1",
          "it+f3", "nl+m8", "pl+f2", "ru+m3", "sv+f4", "tr+m2", "hu+f1", "da+m4", "cs+f5", "en-us+croak", "en-us+whisper",
          "en-029+m5", "en-in+f2", "ro+m7", "el+f3", "pt+m1", "pt-br+f4", "fi+m6"]
ESPEAK_MORE = ["en-us+f1", "en-us+m8", "en-us+m3", "en-us+klatt4", "en-us+f5", "en-gb+m6", "en-gb+m2", "en-gb+f4",
               "en-gb-x-gbclan+f2", "en-gb-x-gbcwmd+m5", "de+f4", "de+m3", "de+f1", "fr+m1", "fr+f2", "fr+m7", "fr-be+f3",
               "fr-ch+m5", "es+f4", "it+m4", "nl+f2", "pl+m1", "ru+f3", "sv+m2", "tr+f4", "hu+m3", "cs+m6", "en-us+Andy",
               "en-us+Annie", "en-gb+belinda", "en-us+Gene", "en-gb+Jacky", "en-us+linda", "en-gb+Mario", "en-us+norbert", "en-us+steph",
               "en-us+Alex", "en-gb+Denis", "en-us+Lee", "en-us+michael"]
ESPEAK_HELD = ["en-us+m1", "en-gb+f5", "es+f2", "de+m8", "sk+m4"]
FLITE = ["slt", "rms", "awb", "kal16", "kal"]
# How each is read, and two pitches in Hz that are not its own.
FLITE_READ = {"plain": 1.0, "slow": 1.25, "fast": 0.85}
FLITE_HZ = {"slt": (140, 215), "rms": (80, 130), "awb": (105, 170), "kal16": (85, 140), "kal": (90, 130)}
FESTIVAL = ["kal_diphone", "ked_diphone", "cmu_us_slt_arctic_hts", "czech_dita", "czech_krb", "czech_machac", "czech_ph",
            "lp_diphone", "pc_diphone", "hy_fi_mv_diphone", "suo_fi_lj_diphone", "upc_ca_ona_hts"]
RECORDED = {
    "allison": ("asterisk/sounds/en_US_f_Allison", "*"), "june": ("asterisk/sounds/fr_CA_f_June", "*"),
    "allison-es": ("asterisk/sounds/es_MX_f_Allison", "*"), "carlo": ("asterisk/sounds/it_IT_m_Carlo", "*"),
    "menardi": ("asterisk/sounds/it_IT_f_Menardi", "*"), "armelle": ("asterisk/sounds/fr", "*"),
    "colombia": ("asterisk/sounds/es", "*"), "fish-cs-m": ("games/fillets-ng/sound", "cs/*-m-*"),
    "fish-cs-v": ("games/fillets-ng/sound", "cs/*-v-*"),
}
RECORDED_HELD = {"allison": RECORDED["allison"], "russian": ("asterisk/sounds/ru_RU_f_IvrvoiceRU", "*"), "fish-nl-m": ("games/fillets-ng/sound", "nl/*-m-*"),
                 "fish-nl-v": ("games/fillets-ng/sound", "nl/*-v-*")}
# Folders of which each folder is a voice, or several of one language; and endings of the names of what is read in a language.
MANY = {"hedgehog": "games/hedgewars/Data/Sounds/voices", "potato": "ktuberling/sounds", "letters": "klettres"}
# Recordings with noise that would pass for speech.
NOISY = ["letters-hu", "potato-fi"]
STAMPS = "tuxpaint/stamps"
STAMPS_READ = ["fr", "ru", "ro", "ca", "bg", "es", "be", "el", "da", "lt", "nl"]
# Speech in one file, in the format that ScummVM's `queen` engine documents.
QUEEN = "scummvm/flight-of-the-amazon-queen/queen.1c"
HELD_PROMPTS = {"asterisk/sounds/en_US_f_Allison": 60}
SENTENCES, FEWER = 150, 100
MOST_CLIPS = 300
SECONDS = (0.25, 10.0)
LEAST_CLIPS = 8


def sentences(chance, count):
    """Of five one is short and two are words in any order; which ones, `chance` says."""
    words = [line.split(" ", 1)[0] for line in DICTIONARY.read_text().splitlines()]
    words = [word for word in words if word.isalpha() and 2 < len(word) < 11]

    def one():
        draw = chance.random()
        if draw < 0.1:
            return chance.choice(words) + "."
        if draw < 0.4:
            return " ".join(chance.choice(words) for _ in range(chance.randint(2, 8))) + chance.choice(".?!.")
        text = chance.choice(SHORT) if draw < 0.5 else chance.choice(PATTERNS)
        while "{" in text:
            before, rest = text.split("{", 1)
            slot, after = rest.split("}", 1)
            text = before + chance.choice(WORDS[slot]) + after
        return text
    return [one() for _ in range(count)]


def run(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def convert(source, target, *effects):
    """To 16 kHz mono, with effects of sox. Whether there is a file then: what sox cannot read is left out."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        run("sox", source, "-r", 16_000, "-c", 1, "-b", 16, target, *effects)
    except subprocess.CalledProcessError:
        target.unlink(missing_ok=True)
    return target.exists() and target.stat().st_size > 44


def spoken(out, voice, chance, command, count=SENTENCES):
    """What a synthesizer says: `command` of a text and a file writes it."""
    (out / voice).mkdir(parents=True, exist_ok=True)
    for n, text in enumerate(sentences(chance, count)):
        run(*command(text, out / voice / f"{n:03}.wav"))


def festival(out, voice):
    """The same of a synthesizer that takes long to begin: all at once."""
    folder = out / f"festival-{voice}"
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(voice)
    said = [f"(voice_{voice})", f"(Parameter.set 'Duration_Stretch {chance.choice([0.9, 1.0, 1.1])})"]
    for n, text in enumerate(sentences(chance, SENTENCES)):
        saved = f'(utt.save.wave (utt.synth (Utterance Text "{text}")) "{folder}/{n:03}.wav" \'riff)'
        # Some voices cannot say every text.
        said.append(f"(unwind-protect {saved} nil)")
    script = folder / "said.scm"
    script.write_text("\n".join(said))
    run("festival", "-b", script)
    script.unlink()


def recorded(out, voice, files, pace, keep=lambda files: files):
    """What a person said, `pace` times as fast and as high."""
    sound = (".wav", ".gsm", ".ogg", ".mp3")
    files = [path for path in sorted(files) if path.suffix in sound and path.stem not in TEST_PROMPTS]
    random.Random(voice.rsplit("-", 1)[0]).shuffle(files)
    kept = 0
    for path in keep(files):
        target = out / voice / f"{kept:03}.wav"
        made = convert(path, target, "speed", f"{pace}")
        if made and SECONDS[0] <= target.stat().st_size / 32_000 <= SECONDS[1]:
            kept += 1
        else:
            target.unlink(missing_ok=True)
        if kept == MOST_CLIPS:
            break
    # Of so little a voice cannot be drawn.
    if kept < LEAST_CLIPS:
        shutil.rmtree(out / voice, ignore_errors=True)


def queen(root, folder):
    """The clips of a game's file, a folder for all that is said in one place but by its hero, who has his own."""
    data = (root / QUEEN).read_bytes()
    count = struct.unpack(">H", data[13:15])[0]
    for n in range(count):
        at = 15 + 21 * n
        name = data[at : at + 12].split(b"\0")[0].decode("latin-1")
        begin, size = struct.unpack(">II", data[at + 13 : at + 21])
        if name[:6].isdigit() and name.endswith(".SB"):
            to = folder / ("hero" if name[6] == "J" else name[:2])
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{name[:-3]}.mp3").write_bytes(data[begin : begin + size])


def tasks(out, part, roots, scratch):
    """All voices of a part, each as a function that makes it."""
    held = part == "held"
    for voice in ESPEAK_HELD if held else ESPEAK + ESPEAK_MORE:
        def espeak(voice=voice):
            chance = random.Random(voice)
            speed = str(chance.choice([140, 160, 175, 190, 215]))
            count = FEWER if voice in ESPEAK_MORE else SENTENCES
            spoken(out, f"espeak-{voice}", chance, lambda text, to: ("espeak-ng", "-v", voice, "-s", speed, "-w", to, text), count)
        yield espeak
    for voice in FLITE:
        # The tests' own voices are held out with other sentences.
        read = {name: f"duration_stretch={stretch}" for name, stretch in FLITE_READ.items()}
        read |= {f"{hz}-hz": f"int_f0_target_mean={hz}" for hz in FLITE_HZ[voice]}
        for name, pace in [("held", "duration_stretch=1.0")] if held else read.items():
            def flite(voice=voice, name=name, pace=pace):
                chance = random.Random(f"{voice} {name}")
                spoken(out, f"flite-{voice}-{name}", chance,
                       lambda text, to: ("flite", "-voice", voice, "--setf", pace, "-t", text, "-o", to))
            yield flite
    for voice, (folder, pattern) in (RECORDED_HELD if held else RECORDED).items():
        files = [path for root in roots for path in (root / folder).rglob(pattern)
                 if folder != "asterisk/sounds/es" or "es_MX" not in str(path)]
        first = HELD_PROMPTS.get(folder)
        keep = (lambda files, first=first: files[:first]) if held else (lambda files, first=first: files[first:])
        for pace in (1.0,) if held else (1.0, 0.88, 1.14):
            yield lambda voice=voice, files=files, pace=pace, keep=keep: recorded(out, f"{voice}-{pace}", files, pace, keep)
    if held:
        return
    for voice in FESTIVAL:
        yield lambda voice=voice: festival(out, voice)
    for root in roots:
        if (root / QUEEN).exists():
            queen(root, scratch / "queen")
    places = {name: [root / folder for root in roots] for name, folder in MANY.items()} | {"queen": [scratch / "queen"]}
    for name, folders in places.items():
        for folder in sorted(path for place in folders if place.exists() for path in place.iterdir() if path.is_dir()):
            voice, files = f"{name}-{folder.name}", list(folder.rglob("*.*"))
            if voice not in NOISY:
                yield lambda voice=voice, files=files: recorded(out, f"{voice}-1.0", files, 1.0)
    for code in STAMPS_READ:
        files = [path for root in roots for path in (root / STAMPS).rglob(f"*_desc_{code}.ogg")]
        yield lambda code=code, files=files: recorded(out, f"stamps-{code}-1.0", files, 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--roots", type=Path, nargs="+", default=[Path("/usr/share")], help="where recordings lie")
    args = parser.parse_args()
    with ThreadPoolExecutor() as pool:
        made = [pool.submit(make) for part in ("held", "train") for make in tasks(args.out / part, part, args.roots, args.out)]
        for one in made:
            one.result()


if __name__ == "__main__":
    main()

"""The last stage of the Dockerfile, carried out in a Debian 12: its RUN lines, with the program and the files put in."""

import atexit
import os
import re

import house

DOCKERFILE = os.path.join(house.ROOT, "Dockerfile")
# Time limit in seconds for packages from the network.
LONG = 540
kept = []


def instructions():
    """Returns the instructions of the Dockerfile, each a word and the rest, continued lines joined."""
    with open(DOCKERFILE, encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines()]


def last_stage():
    found = instructions()
    return found[max(at for at, (word, _) in enumerate(found) if word == "FROM"):]


def variables():
    """Returns the environment of the last stage."""
    return dict(pair.split("=", 1) for word, rest in last_stage() if word == "ENV" for pair in rest.split())


class Image:
    """A root that has been made as the last stage says."""

    def __init__(self):
        self.debian = house.Debian()
        atexit.register(self.debian.close)
        names = f"{self.debian.path}/etc/resolv.conf"
        house.run(*house.AS_ROOT, "cp", "/etc/resolv.conf", names, check=False)
        secrets = [f"RINGER_SECRET_KEY={house.PLANTED[0]}", f"RINGER_DATABASE_URL=postgres://u:{house.PLANTED[0]}@h/n"]
        for word, rest in last_stage():
            if word == "RUN":
                self.debian.run("env", *secrets, "/bin/sh", "-c", rest, timeout=LONG)
            elif word == "COPY":
                self.copy(*rest.split())
        house.run(*house.AS_ROOT, "rm", "-f", names)

    def copy(self, *words):
        """Carries out a COPY; what comes from the first stage is the program, stripped as there."""
        *sources, target = words
        self.debian.run("mkdir", "-p", os.path.dirname(target))
        if sources[0] == "--from=build":
            self.debian.bring(self.built(*sources[1:]), target)
            return
        for source in sources:
            self.debian.bring(os.path.join(house.ROOT, source), target)

    def built(self, source):
        """Returns the path of what the first stage leaves at `source`: the program, stripped, or the licences."""
        path = os.path.join(self.debian.folder, os.path.basename(source))
        if source == "/ringer":
            house.run("strip", "-o", path, house.PROGRAM)
        else:
            assert source == "/THIRD-PARTY-LICENSES.txt", source
            text = house.run("python3", os.path.join(house.ROOT, "packaging", "bill.py")).stdout
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def command(self, *words, files=None, **settings):
        """Returns the command that runs `words` as the image's user; only /data and /tmp can be written to.

        `files` are put into /etc/ringer; `settings` are added to the image's own environment."""
        user = dict(last_stage())["USER"]
        env = [f"{name}={value}" for name, value in {**variables(), **settings}.items()]
        root, uid = self.debian.path, user.split(":")[0]
        mounts = (f"mount --bind {root} {root} && mount -o remount,ro,bind {root} && "
                  f"for at in data tmp; do mount -t tmpfs -o uid={uid},mode=700 tmpfs {root}/$at; done && mount --bind /dev {root}/dev\n")
        if files:
            self.debian.run("mkdir", "-p", "/etc/ringer")
            mounts += f"mount --bind -o ro {files} {root}/etc/ringer\n"
        start = f'exec chroot --userspec={user} {root} /usr/bin/setpriv --no-new-privs -- env -i PATH=/usr/bin:/bin "$@"'
        return [*house.AS_ROOT, "unshare", "--mount", "bash", "-ec", mounts + start, "bash", *env, *words]

    def beside(self, process, *words, **settings):
        """Returns the command that runs `words` in the container of a process that `command` started."""
        user = dict(last_stage())["USER"]
        env = [f"{name}={value}" for name, value in {**variables(), **settings}.items()]
        bare = ["env", "-i", "PATH=/usr/bin:/bin", *env]
        return [*house.AS_ROOT, "nsenter", "--mount", "--target", str(process), "chroot", f"--userspec={user}", self.debian.path, *bare, *words]


def made():
    """Returns the image, which is made once for all tests."""
    if not kept:
        kept.append(Image())
    return kept[0]

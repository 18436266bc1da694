//! Files and scenarios of a run: paths, folders and globs; filters, tags and shards.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Files of which a run may consist.
const FILES_MAX: usize = 10_000;
/// Files that a line names.
const SHOWN: usize = 5;
/// Folders in each other that a glob is looked for in.
const DEPTH_MAX: usize = 32;

/// Returns the files of paths: each a file, a folder (all *.yaml and *.yml in it) or a glob; sorted, each once.
///
/// # Errors
/// A path that has none.
pub(crate) fn files(paths: &[String]) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for given in paths {
        let path = Path::new(given);
        let mut found = match std::fs::metadata(path) {
            Ok(about) if about.is_dir() => of_folder(path)?,
            Ok(_) => vec![path.to_owned()],
            Err(_) if given.contains(['*', '?']) => glob(given)?,
            Err(error) => return Err(format!("{given}: {error}")),
        };
        if found.is_empty() {
            return Err(format!("{given}: there is no suite (*.yaml, *.yml)"));
        }
        found.sort();
        found.retain(|path| !files.contains(path));
        files.extend(found);
        if files.len() > FILES_MAX {
            return Err(format!("there are more than {FILES_MAX} files"));
        }
    }
    Ok(files)
}

/// Returns a line for each folder among the paths below which there are files that look like suites and are not run:
/// those in its sub-folders, and those whose ending has capitals.
pub(crate) fn files_not_run(paths: &[String]) -> Vec<String> {
    let line = |given: &String| {
        let folder = Path::new(given);
        let (taken, mut found) = (of_folder(folder).ok()?, Vec::new());
        look_below(folder, 0, &mut found);
        found.retain(|path| !taken.contains(path));
        found.sort();
        let first: Vec<String> = found
            .iter()
            .take(SHOWN)
            .map(|path| path.strip_prefix(folder).unwrap_or(path).display().to_string())
            .collect();
        let more = if found.len() > SHOWN { format!(" and {} more", found.len() - SHOWN) } else { String::new() };
        let given = given.trim_end_matches('/');
        let mut globs: Vec<String> =
            found.iter().filter_map(|path| Some(format!("'{given}/**/*.{}'", path.extension()?.to_str()?))).collect();
        globs.sort();
        globs.dedup();
        let (first, globs) = (first.join(", "), globs.join(" "));
        (!found.is_empty()).then(|| format!("{given}: not run: {first}{more}. To run them, name {globs}"))
    };
    paths.iter().filter(|given| Path::new(given).is_dir()).filter_map(line).collect()
}

/// Adds the files below a folder whose names end as those of suites, in whatever letters.
fn look_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for path in entries(folder).unwrap_or_default() {
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_yaml =
            path.extension().is_some_and(|end| ["yaml", "yml"].iter().any(|own| end.eq_ignore_ascii_case(own)));
        if is_hidden || path.is_symlink() || depth > DEPTH_MAX || found.len() > FILES_MAX {
            continue;
        }
        if path.is_dir() {
            look_below(&path, depth + 1, found);
        } else if is_yaml {
            found.push(path);
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let describe = |error: std::io::Error| format!("{}: {error}", folder.display());
    let read = std::fs::read_dir(folder).map_err(describe)?;
    read.map(|entry| entry.map(|entry| entry.path()).map_err(describe)).collect()
}

fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let is_suite = |path: &PathBuf| {
        let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        is_yaml && path.is_file()
    };
    Ok(entries(folder)?.into_iter().filter(is_suite).collect())
}

/// Returns the paths that fit a glob: `*` and `?` within a name, `**` for any folders.
fn glob(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let start = if pattern.starts_with('/') { PathBuf::from("/") } else { PathBuf::new() };
    let mut found = Vec::new();
    walk(&start, &parts, 0, &mut found)?;
    Ok(found)
}

fn walk(at: &Path, parts: &[&str], depth: usize, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let Some((part, rest)) = parts.split_first() else {
        found.extend(Some(at.to_owned()).filter(|path| path.is_file()));
        return Ok(());
    };
    if depth > DEPTH_MAX || found.len() > FILES_MAX {
        return Ok(());
    }
    if part.is_empty() {
        return walk(at, rest, depth, found);
    }
    if !part.contains(['*', '?']) {
        let next = at.join(part);
        return if next.exists() { walk(&next, rest, depth + 1, found) } else { Ok(()) };
    }
    let folder = if at.as_os_str().is_empty() { Path::new(".") } else { at };
    if *part == "**" {
        walk(at, rest, depth + 1, found)?;
    }
    for path in entries(folder).unwrap_or_default() {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let next = at.join(name);
        let is_folder = next.is_dir() && !next.is_symlink();
        match *part == "**" {
            true if is_folder && !name.starts_with('.') => walk(&next, parts, depth + 1, found)?,
            false if matches(part, name) => walk(&next, rest, depth + 1, found)?,
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    Ok(())
}

fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// One part of all scenarios: number K of N.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 1.
    pub number: u64,
    /// Number of shards of the whole run.
    pub of: u64,
}

impl Shard {
    /// Reads `K/N`.
    ///
    /// # Errors
    /// For a person.
    pub fn parse(text: &str) -> Result<Shard, String> {
        let read = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match read {
            Some((number, of)) if of >= 1 && (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("a shard is K/N, like 1/4".to_owned()),
        }
    }

    /// True when the scenario of this name belongs to it: by a hash of the name, so that others change nothing.
    pub fn has(self, name: &str) -> bool {
        let hash = Sha256::digest(name);
        let mut head = [0; 8];
        head.copy_from_slice(&hash[..8]);
        u64::from_be_bytes(head) % self.of == self.number - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_run_are_named_with_their_glob() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a.yaml", "b.YAML", "deep/one/d.yaml", ".hidden/e.yaml", "deep/x.txt"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, "").expect("it is written");
        }
        let at = folder.path().to_string_lossy().into_owned();
        let expect =
            format!("{at}: not run: b.YAML, deep/one/d.yaml. To run them, name '{at}/**/*.YAML' '{at}/**/*.yaml'");
        assert_eq!(files_not_run(std::slice::from_ref(&at)), [expect]);
        let whole = [format!("{at}/**/*.YAML"), format!("{at}/**/*.yaml")];
        assert_eq!(files(&whole).expect("the globs take them").len(), 3);
        assert!(files_not_run(&whole).is_empty() && files_not_run(&[format!("{at}/deep/one")]).is_empty());
    }

    #[test]
    fn paths_are_files_folders_and_globs() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        for name in ["b.yaml", "a.yml", "c.txt", "deep/one/d.yaml", ".hidden/e.yaml"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, "").expect("it is written");
        }
        for (paths, expect) in [
            (vec![at("")], Ok(vec!["a.yml", "b.yaml"])),
            (vec![at("c.txt")], Ok(vec!["c.txt"])),
            (vec![at("*.y*ml"), at("b.yaml")], Ok(vec!["a.yml", "b.yaml"])),
            (vec![at("?.yaml")], Ok(vec!["b.yaml"])),
            (vec![at("**/*.yaml")], Ok(vec!["b.yaml", "deep/one/d.yaml"])),
            (vec![at("deep")], Err("there is no suite")),
            (vec![at("x*.yaml")], Err("there is no suite")),
            (vec![at("none.yaml")], Err("No such file")),
        ] {
            match (files(&paths), expect) {
                (Ok(found), Ok(expect)) => {
                    let expect: Vec<PathBuf> = expect.iter().map(|name| folder.path().join(name)).collect();
                    assert_eq!(found, expect, "{paths:?}");
                }
                (Err(why), Err(expect)) => assert!(why.contains(expect), "{why}"),
                other => panic!("{paths:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn each_scenario_is_in_one_shard() {
        for (text, is_good) in
            [("1/1", true), ("2/3", true), ("0/3", false), ("4/3", false), ("1", false), ("a/b", false)]
        {
            assert_eq!(Shard::parse(text).is_ok(), is_good, "{text}");
        }
        let shards: Vec<Shard> = (1..=3).map(|number| Shard { number, of: 3 }).collect();
        let counts: Vec<usize> =
            shards.iter().map(|shard| (0..60).filter(|at| shard.has(&format!("scenario {at}"))).count()).collect();
        assert!(counts.iter().sum::<usize>() == 60 && counts.iter().all(|count| *count > 5), "{counts:?}");
    }
}

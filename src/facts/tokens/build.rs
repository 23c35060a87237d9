//! The build script: turns the published tables that token counting needs into plain bytes, so that the program itself
//! links no tokenizer library and has next to nothing to do when it starts.
//!
//! Written to `OUT_DIR`:
//!
//! - `<vocabulary>.merges`: the 256 single-byte tokens by rank, one byte each; then for every further rank the two
//!   tokens that it joins, three little-endian bytes each.
//! - `classes`: for every 256 code points the number of their block, one byte; then the blocks, one [`CharClass`] per code
//!   point.
//!
//! For musl it compiles `base/memory.c`. It also names the build: the variable `DEVBOY_BUILD` is a hash of everything that
//! decides what devboy answers, so that an answer remembered by another build is not taken for this one's. And it asks the
//! linker of a release for a small program.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use class::CharClass;
use regex_syntax::hir::{self, HirKind};
use tiktoken_rs::CoreBPE;

mod class;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What decides what devboy answers: its code, its data files, the versions of its dependencies.
const SOURCES: [&str; 3] = ["src", "rules", "Cargo.lock"];
/// What does not.
const TESTS: &str = "src/tests";

fn main() -> Result<()> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rustc-env=DEVBOY_BUILD={:016x}", build_hash()?);
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "musl") {
        // The compiler must not make a call of the function out of the function.
        let mut memory = cc::Build::new();
        memory.file("src/base/memory.c").opt_level(2).flag("-fno-builtin");
        memory.flag_if_supported("-fno-tree-loop-distribute-patterns").try_compile("devboy_memory")?;
    }
    let out = env::var("OUT_DIR")?;
    let out = Path::new(&out);
    link_small(out)?;
    // The tables take a while and hang on nothing but this script: they are made once per version of it.
    let script =
        [fs::read("src/facts/tokens/build.rs")?, fs::read("src/facts/tokens/class.rs")?, fs::read("Cargo.lock")?]
            .concat();
    let made_by = out.join("made_by");
    if fs::read(&made_by).is_ok_and(|known| known == script) {
        return Ok(());
    }
    fs::write(out.join("o200k_base.merges"), merges(&tiktoken_rs::o200k_base()?)?)?;
    fs::write(out.join("cl100k_base.merges"), merges(&tiktoken_rs::cl100k_base()?)?)?;
    fs::write(out.join("classes"), classes()?)?;
    fs::write(made_by, script)?;
    Ok(())
}

/// Asks the linker of a release for less, where a program that is linked so runs: functions of the same code once (a twelfth),
/// and no tables for unwinding, which a release does not do (a fourteenth; who asks for debug information wants to see stacks,
/// and keeps them).
fn link_small(out: &Path) -> Result<()> {
    if env::var("PROFILE")? != "release" || env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    let script = out.join("no_unwinding.ld");
    fs::write(&script, "SECTIONS { /DISCARD/ : { *(.eh_frame*) *(.gcc_except_table*) } } INSERT AFTER .text;")?;
    let mut asked = vec!["-Wl,--icf=all".to_owned()];
    if env::var("DEBUG")? == "false" {
        asked.push(format!("-Wl,-T,{}", script.to_str().ok_or("OUT_DIR is no text")?));
    }
    for flag in asked {
        if runs_linked_with(&flag, out)? {
            println!("cargo::rustc-link-arg-bins={flag}");
        }
    }
    Ok(())
}

/// Whether a program that is linked with a flag runs: that depends on the toolchain, on what is set, and on the system.
fn runs_linked_with(flag: &str, out: &Path) -> Result<bool> {
    let (program, linked) = (out.join("linked.rs"), out.join("linked"));
    fs::write(&program, "fn main() {}")?;
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let linker = env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let mut rustc = Command::new(env::var("RUSTC")?);
    // The last of two says which: as cargo has it.
    rustc.args(linker).args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    rustc.args(["-Cpanic=abort", "--target", &env::var("TARGET")?, &format!("-Clink-arg={flag}"), "-o"]);
    rustc.arg(&linked).arg(&program);
    let works = |told: Output| told.status.success();
    Ok(rustc.output().is_ok_and(works) && Command::new(&linked).output().is_ok_and(works))
}

/// FNV-1a over names and contents of all [`SOURCES`], in the order of their names.
fn build_hash() -> Result<u64> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut open: Vec<PathBuf> = SOURCES.iter().map(PathBuf::from).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path)?.map(|entry| Ok(entry?.path()));
            open.extend(entries.collect::<Result<Vec<PathBuf>>>()?);
        } else if !path.starts_with(TESTS) {
            files.push(path);
        }
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        for byte in file.to_string_lossy().bytes().chain([0]).chain(fs::read(&file)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    Ok(hash)
}

/// A vocabulary as merges. Its tokens are known by their bytes: merged with the tokens of lower rank, these end as two
/// parts, and the token joins the two.
fn merges(vocabulary: &CoreBPE) -> Result<Vec<u8>> {
    let mut table = Vec::new();
    let mut token_of_byte = [0; 256];
    let mut joined = HashMap::new();
    for rank in 0.. {
        let Ok(token) = vocabulary.decode_bytes(&[rank]) else { break };
        if let [byte] = token[..] {
            token_of_byte[usize::from(byte)] = rank;
            table.push(byte);
            continue;
        }
        let mut parts: Vec<u32> = token.iter().map(|byte| token_of_byte[usize::from(*byte)]).collect();
        while let Some((part, at)) =
            (1..parts.len()).filter_map(|at| Some((*joined.get(&(parts[at - 1], parts[at]))?, at))).min()
        {
            parts[at - 1] = part;
            parts.remove(at);
        }
        let [left, right] = parts[..] else { return Err(format!("token {rank} does not join two others").into()) };
        joined.insert((left, right), rank);
        table.extend([left, right].iter().flat_map(|part| part.to_le_bytes().into_iter().take(3)));
    }
    Ok(table)
}

/// The class of every character, by the tables of the regular-expression parser that the patterns are written for.
fn classes() -> Result<Vec<u8>> {
    const PROPERTIES: [(CharClass, &str); 6] = [
        (CharClass::Lower, r"\p{Ll}"),
        (CharClass::Upper, r"[\p{Lu}\p{Lt}]"),
        (CharClass::Caseless, r"[\p{Lm}\p{Lo}]"),
        (CharClass::Mark, r"\p{M}"),
        (CharClass::Number, r"\p{N}"),
        (CharClass::Space, r"\s"),
    ];
    const CHARACTERS: [(CharClass, &str); 12] = [
        (CharClass::Slash, "/"),
        (CharClass::Apostrophe, "'"),
        (CharClass::LowerS, "sdmtſ"),
        (CharClass::LowerR, "rv"),
        (CharClass::LowerL, "l"),
        (CharClass::LowerE, "e"),
        (CharClass::UpperS, "SDMT"),
        (CharClass::UpperR, "RV"),
        (CharClass::UpperL, "L"),
        (CharClass::UpperE, "E"),
        (CharClass::Blank, " "),
        (CharClass::Newline, "\r\n"),
    ];
    let mut classes = vec![CharClass::Symbol as u8; 0x11_0000];
    for (class, property) in PROPERTIES {
        let parsed = regex_syntax::parse(property)?;
        let HirKind::Class(hir::Class::Unicode(ranges)) = parsed.kind() else { return Err(property.into()) };
        for range in ranges.iter() {
            classes[range.start() as usize..=range.end() as usize].fill(class as u8);
        }
    }
    for (class, characters) in CHARACTERS {
        characters.chars().for_each(|character| classes[character as usize] = class as u8);
    }
    let mut numbers = Vec::new();
    let mut blocks: Vec<&[u8]> = Vec::new();
    for block in classes.chunks(256) {
        let number = blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        numbers.push(u8::try_from(number)?);
    }
    Ok([numbers, blocks.concat()].concat())
}

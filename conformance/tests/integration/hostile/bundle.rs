//! The bytes of a bundle.

use std::fs;
use std::path::Path;
use std::thread;

use kpvm::engine::observer::{Event, Observer};
use kpvm::engine::{Bundle, Engine, Evaluation, Input, Request, Session};
use kpvm::host::NoHost;
use kpvm_cli::suite::discovery::{SUITE_FILE, discover};
use kpvm_compiler::analysis;
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;
use kpvm_format::BundleBuilder;
use kpvm_format::instruction::{Instruction, Op};
use kpvm_format::site::{Site, SitePathId};
use kpvm_format::table::{
    Block, NONE, Path as StaticPath, Place, Policy, Range, Rule, SiteKind, SiteLabel, SitePlace,
};
use sha2::{Digest, Sha256};
use zerocopy::FromZeros;
use zerocopy::little_endian::{U16, U32};

use super::oracle::{Expect, Seen, check, compile_policies, policy_with_pattern, thing};

pub(crate) const SECTION_TABLE: usize = 60;
pub(crate) const SECTION_ENTRY: usize = 12;

/// A bundle of corpus policies of at least this many bytes.
pub(crate) fn real_bundle(bytes: usize) -> Vec<u8> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut sources = Sources::new();
    for file in discover(&[corpus], SUITE_FILE).files {
        let policy = file.with_file_name("policy.yaml");
        if let Ok(text) = fs::read_to_string(&policy) {
            sources.add("policy.yaml", text);
            let bundle = compile(&sources, &Options::default()).bundle.unwrap();
            if bundle.len() >= bytes {
                return bundle;
            }
        }
    }
    panic!("the corpus gives no bundle of {bytes} bytes");
}

/// Updates length and digest, so that only the tables are wrong.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    let digest = Sha256::digest(&bytes[56..]);
    bytes[24..56].copy_from_slice(&digest);
    bytes
}

/// Objects that match most rules of the corpus.
pub(crate) fn objects() -> Vec<Vec<u8>> {
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop",
        "labels": {"app": "a", "example.com/b": "c"}, "annotations": {"x": "y"}},
        "spec": {"containers": [{"name": "a", "image": "nginx:latest", "ports": [{"containerPort": 80}]},
        {"name": "b", "image": "redis", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "v", "hostPath": {"path": "/s"}}]}}"#;
    let deployment = format!(
        r#"{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {{"name": "d"}},
        "spec": {{"replicas": 3, "template": {pod}}}}}"#
    );
    vec![
        pod.as_bytes().to_vec(),
        deployment.into_bytes(),
        thing("{}").into_bytes(),
    ]
}

/// Loads and, if that succeeds, evaluates; returns what happened as text.
fn exercise(bytes: &[u8], objects: &[Vec<u8>]) -> bool {
    let Ok(engine) = Engine::load(bytes.to_vec()) else {
        return false;
    };
    let is_verified = analysis::verify(engine.bundle()).is_ok();
    let mut session = Session::new(&engine);
    for object in objects {
        let Ok(evaluation) = session.evaluate(&Request::create(Input::Json(object))) else {
            continue;
        };
        for response in evaluation.responses() {
            // Rendering counts too.
            assert!(response.message().len() <= 1 << 16);
            let _ = (response.policy(), response.rule(), response.failure());
        }
        let answers = shown(evaluation);
        let request = Request::create(Input::Json(object));
        let observed = session.evaluate_observed(&request, &mut NoHost, &mut Telling);
        // A plan that is not that of the code can say something else; `kpc verify` finds it.
        if is_verified {
            assert_eq!(observed.map(shown).ok(), Some(answers));
        }
    }
    true
}

/// The responses as text.
fn shown(evaluation: Evaluation<'_>) -> Vec<String> {
    evaluation
        .responses()
        .map(|response| format!("{} {}", response.status(), response.message()))
        .collect()
}

/// Records events as text.
struct Telling;

impl Observer for Telling {
    fn observe(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Decided(_)) {
            assert!(format!("{event:?}").len() <= 1 << 16);
        }
    }
}

fn load(bytes: &[u8]) -> Seen {
    match Bundle::load(bytes) {
        Ok(_) => Seen::Evaluated(Vec::new()),
        Err(error) => Seen::Refused(error.to_string()),
    }
}

pub(crate) fn refused(row: &str, message: &'static str, bytes: &[u8]) {
    check(row, bytes.len(), Expect::Refused(message), || load(bytes));
}

#[test]
fn foreign_bytes() {
    refused("row 1, empty", "expected", b"");
    refused("row 1, one byte", "expected", b"k");
    refused("row 1, magic", "expected", b"kpvm\r\n\x1a\n");
    refused("row 1, JSON", "expected", br#"{"kind": "ClusterPolicy"}"#);
    refused("row 1, damaged line ends", "expected", b"kpvm\n\x1a\n");
}

#[test]
fn every_prefix() {
    let bytes = real_bundle(20_000);
    for length in 0..bytes.len() {
        assert!(
            Bundle::load(&bytes[..length]).is_err(),
            "row 2, {length} bytes"
        );
        // With a matching length in the header.
        if length >= SECTION_TABLE {
            let sealed = seal(bytes[..length].to_vec());
            assert!(
                Bundle::load(sealed).is_err(),
                "row 2, {length} bytes, sealed"
            );
        }
    }
}

/// Flips every `step`-th bit, on two threads, each time with a valid digest.
fn flip_bits(step: usize) {
    flip_bits_of(&real_bundle(20_000), &objects(), step);
}

/// Like [`flip_bits`], with a given bundle and objects.
pub(crate) fn flip_bits_of(bytes: &[u8], objects: &[Vec<u8>], step: usize) {
    assert!(exercise(bytes, objects));
    let bits = bytes.len() * 8;
    let evaluated: usize = thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                let places = (half * step..bits).step_by(2 * step);
                places
                    .filter(|bit| {
                        let mut bytes = bytes.to_vec();
                        bytes[bit / 8] ^= 1 << (bit % 8);
                        // Fields of the header are checked unsealed.
                        let header = bit / 8 < 56;
                        exercise(&if header { bytes } else { seal(bytes) }, objects)
                    })
                    .count()
            })
        });
        halves.map(|half| half.join().unwrap()).iter().sum()
    });
    assert!(evaluated < bits / step, "row 3");
}

/// Row 3: a sample that includes every bit position.
#[test]
fn flipped_bits() {
    flip_bits(61);
}

#[test]
#[ignore = "takes minutes without optimisation"]
fn every_flipped_bit() {
    flip_bits(1);
}

#[test]
fn section_tables() {
    let bytes = real_bundle(20_000);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let patched = |at: usize, value: u32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        seal(bytes)
    };
    let count = word(56);
    for wrong in [0, count - 1, count + 1, 1 << 31, u32::MAX] {
        refused("row 4, count", "malformed", &patched(56, wrong));
    }
    for section in 0..count as usize {
        let entry = SECTION_TABLE + section * SECTION_ENTRY;
        let (kind, offset, length) = (word(entry), word(entry + 4), word(entry + 8));
        let wrong = [
            (entry, kind + 1),
            (entry, u32::MAX),
            (entry + 4, offset + 1),
            (entry + 4, offset - 1),
            (entry + 4, u32::MAX),
            (entry + 8, length + 1),
            (entry + 8, u32::MAX),
            (entry + 8, u32::MAX - offset + 1),
            // Row 10: more entries than bytes.
            (entry + 8, 1 << 31),
        ];
        for (at, value) in wrong {
            refused("rows 4, 10", "malformed", &patched(at, value));
        }
    }
}

#[test]
fn versions_flags_and_tails() {
    let bytes = real_bundle(20_000);
    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    let version = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    refused(
        "row 12",
        "bundle format 6, this program reads 5",
        &with(8, &(version + 1).to_le_bytes()),
    );
    refused(
        "row 12",
        "bundle format 4, this program reads 5",
        &with(8, &(version - 1).to_le_bytes()),
    );
    refused(
        "row 12, endianness",
        "bundle format",
        &with(8, &version.to_be_bytes()),
    );
    refused("row 12, flag", "flags", &with(12, &[1, 0, 0, 0]));
    refused("row 13", "bytes", &[bytes.clone(), bytes.clone()].concat());
    refused("row 13", "bytes", &[bytes.clone(), vec![0]].concat());
    refused(
        "row 13, sealed",
        "malformed",
        &seal([bytes.clone(), vec![0]].concat()),
    );
    refused(
        "damaged",
        "digest",
        &with(bytes.len() - 1, &[bytes[bytes.len() - 1] ^ 1]),
    );
}

/// A bundle with one policy and one rule, for Things, with this body.
fn bundle_with(body: Vec<Instruction>, change: impl FnOnce(&mut BundleBuilder)) -> Vec<u8> {
    let mut builder = BundleBuilder::new();
    let (name, kind) = (builder.text("r"), builder.text("Thing"));
    let mut matched = Instruction::new(Op::ReturnMatched);
    matched.op = Op::ReturnMatched as u8;
    builder.code.push(matched);
    builder.code.extend(&body);
    builder.blocks = vec![
        Block {
            start: U32::new(0),
            length: U32::new(1),
            registers: U16::new(1),
            loops: 0,
            folds: 0,
            lists: 0,
            accumulators: 0,
            sites: Range::EMPTY,
        },
        Block {
            start: U32::new(1),
            length: U32::new(body.len() as u32),
            registers: U16::new(4),
            loops: 64,
            folds: 2,
            lists: 0,
            accumulators: 0,
            sites: Range::EMPTY,
        },
    ];
    builder.index_kinds.push(kind);
    let mut rule = Rule::new_zeroed();
    rule.name = name;
    rule.body_block = U32::new(1);
    rule.kinds = Range::new(0, 1);
    rule.precondition_block = U32::new(NONE);
    rule.message_block = U32::new(NONE);
    rule.properties_block = U32::new(NONE);
    builder.rules.push(rule);
    builder.rule_places.push(Place::new_zeroed());
    builder.meta.sources.push("policy.yaml".into());
    let mut policy = Policy::new_zeroed();
    policy.name = name;
    policy.rules = Range::new(0, 1);
    builder.policies.push(policy);
    builder.meta.policies.push(Default::default());
    change(&mut builder);
    builder.finish()
}

fn instruction(op: Op, a: u8, b: u8, e: u8, c: u32, d: u32) -> Instruction {
    Instruction {
        op: op as u8,
        a,
        b,
        e,
        c: U32::new(c),
        d: U32::new(d),
    }
}

#[test]
fn code() {
    let pass = Instruction::new(Op::ReturnPass);
    let fine = bundle_with(vec![instruction(Op::Jump, 0, 0, 0, 0, 1), pass], |_| {});
    check(
        "a bundle made by hand",
        fine.len(),
        Expect::Results(&["r pass"]),
        || {
            super::oracle::evaluate(
                fine.clone(),
                &Request::create(Input::Json(thing("{}").as_bytes())),
            )
        },
    );
    let loaded = Bundle::load(fine.as_slice()).unwrap();
    let symbols = loaded.tables().symbols.len() as u32;
    let jump = |d| instruction(Op::Jump, 0, 0, 0, 0, d);
    let begin = |slot, d| instruction(Op::LoopBegin, slot, 0, 1, 0, d);
    let next = |slot, d| instruction(Op::LoopNext, slot, 0, 1, 0, d);
    let nested = |depth: usize| {
        let mut code: Vec<Instruction> = (0..depth)
            .map(|level| begin(level as u8, (2 * depth - level) as u32))
            .collect();
        code.extend(
            (0..depth)
                .rev()
                .map(|level| next(level as u8, level as u32 + 1)),
        );
        code.push(pass);
        code
    };
    let rows: Vec<(&str, Vec<Instruction>)> = vec![
        ("5, to itself", vec![jump(0), pass]),
        ("5, backwards", vec![pass, jump(0), pass]),
        ("5, past the end", vec![jump(2), pass]),
        ("5, far past the end", vec![jump(u32::MAX), pass]),
        (
            "5, into a loop",
            vec![jump(2), begin(0, 4), pass, next(0, 2), pass],
        ),
        (
            "5, back out of a loop",
            vec![begin(0, 3), jump(0), next(0, 1), pass],
        ),
        ("5, another loop's end", vec![begin(0, 2), next(1, 1), pass]),
        (
            "5, a test without the way of its errors",
            vec![instruction(Op::CelIf, 0, 0, 0, 0, 1), pass],
        ),
        (
            "5, the way of errors of no test",
            vec![jump(1), instruction(Op::CelOnError, 0, 0, 0, 0, 2), pass],
        ),
        (
            "5, the way of a test's errors at the end",
            vec![
                instruction(Op::CelIf, 0, 0, 0, 0, 1),
                instruction(Op::CelOnError, 0, 0, 0, 0, 1),
            ],
        ),
        ("5, no end", vec![instruction(Op::LoadField, 1, 0, 0, 0, 0)]),
        ("5, empty", vec![]),
        (
            "5, unknown operation",
            vec![
                Instruction {
                    op: Op::ALL.len() as u8,
                    ..pass
                },
                pass,
            ],
        ),
        (
            "5, unknown operation",
            vec![Instruction { op: 255, ..pass }, pass],
        ),
        (
            "6, register",
            vec![instruction(Op::LoadIndex, 4, 0, 0, 0, 0), pass],
        ),
        (
            "6, register",
            vec![instruction(Op::LoadIndex, 1, 4, 0, 0, 0), pass],
        ),
        (
            "6, register",
            vec![instruction(Op::LoadIndex, 255, 0, 0, 0, 0), pass],
        ),
        (
            "6, symbol",
            vec![instruction(Op::LoadField, 1, 0, 0, symbols, 0), pass],
        ),
        (
            "6, symbol",
            vec![instruction(Op::LoadField, 1, 0, 0, symbols + 1, 0), pass],
        ),
        (
            "6, symbol",
            vec![instruction(Op::LoadField, 1, 0, 0, u32::MAX, 0), pass],
        ),
        (
            "6, path",
            vec![instruction(Op::LoadPath, 1, 0, 0, 0, 0), pass],
        ),
        (
            "6, leaf",
            vec![instruction(Op::TestLeaf, 0, 0, 0, 0, 1), pass],
        ),
        (
            "6, fold",
            vec![instruction(Op::FoldBegin, 2, 0, 0, 0, 0), pass],
        ),
        ("6, text", vec![instruction(Op::ReturnText, 0, 0, 0, 0, 0)]),
        (
            "6, kinds",
            vec![instruction(Op::MatchKinds, 0, 0, 0, 0, 1), pass],
        ),
        ("7, 65 loops", nested(65)),
        ("7, 100 loops", nested(100)),
        (
            "7, one slot twice",
            vec![begin(0, 4), begin(0, 3), next(0, 2), next(0, 1), pass],
        ),
    ];
    for (row, body) in rows {
        refused(
            &format!("row {row}"),
            "malformed",
            &bundle_with(body, |_| {}),
        );
    }
    let deepest = bundle_with(nested(64), |_| {});
    assert!(
        exercise(&deepest, &objects()),
        "row 7, 64 loops are allowed"
    );
}

#[test]
fn tables() {
    let pass = || vec![Instruction::new(Op::ReturnPass)];
    let text = |offset: u32, length: u32| kpvm_format::table::Text {
        offset: U32::new(offset),
        length: U32::new(length),
    };
    // A constant that refers to itself, and the longest chain that fits.
    let itself = bundle_with(pass(), |builder| {
        let symbol = builder.symbols.intern("a").0;
        builder.paths.push(StaticPath {
            parent: U32::new(0),
            symbol: U32::new(symbol),
        });
    });
    refused("row 7, path to itself", "malformed", &itself);
    let chain = bundle_with(
        vec![
            instruction(Op::LoadPath, 1, 0, 0, 199_999, 0),
            Instruction::new(Op::ReturnPass),
        ],
        |builder| {
            let symbol = U32::new(builder.symbols.intern("a").0);
            for number in 0..200_000u32 {
                let parent = number.checked_sub(1).unwrap_or(u32::MAX);
                builder.paths.push(StaticPath {
                    parent: U32::new(parent),
                    symbol,
                });
            }
        },
    );
    check(
        "row 7, a chain of 200,000 paths",
        chain.len(),
        Expect::Refused("malformed"),
        || {
            super::oracle::evaluate(
                chain.clone(),
                &Request::create(Input::Json(thing("{}").as_bytes())),
            )
        },
    );
    for wrong in [
        text(0, 1_000),
        text(1_000, 0),
        text(u32::MAX, u32::MAX),
        text(u32::MAX, 1),
    ] {
        let bytes = bundle_with(pass(), |builder| builder.rules[0].name = wrong);
        refused("row 11, text", "malformed", &bytes);
    }
    let bytes = bundle_with(pass(), |builder| builder.rules[0].kinds = Range::new(0, 2));
    refused("row 6, kinds", "malformed", &bytes);
    let bytes = bundle_with(pass(), |builder| builder.rules[0].body_block = U32::new(2));
    refused("row 6, block", "malformed", &bytes);
    let bytes = bundle_with(pass(), |builder| {
        builder.policies[0].rules = Range::new(0, 0)
    });
    refused("row 9, a rule of no policy", "malformed", &bytes);
    let bytes = bundle_with(pass(), |builder| builder.rules[0].policy = U32::new(1));
    refused("row 9, a rule of a missing policy", "malformed", &bytes);
    // Bits that mean nothing today may mean something to a later version.
    let bytes = bundle_with(pass(), |builder| builder.rules[0].flags = u8::MAX);
    refused("row 12, flags of a rule", "unknown flags of a rule", &bytes);
    let bytes = bundle_with(pass(), |builder| builder.policies[0].flags = u8::MAX);
    refused(
        "row 12, flags of a policy",
        "unknown flags of a policy",
        &bytes,
    );
}

/// Row 6 on the cold tables, which explanations, traces and coverage read.
#[test]
fn sites_and_places() {
    type Change = fn(&mut BundleBuilder);
    let site = |change: fn(&mut Site)| {
        bundle_with(vec![Instruction::new(Op::ReturnPass)], |builder| {
            let mut site = Site {
                position: 0,
                kind: SiteKind::Structure,
                path: SitePathId::EMPTY,
                label: SiteLabel::new_zeroed(),
                place: SitePlace::new_zeroed(),
            };
            change(&mut site);
            builder.set_sites(1, vec![site]);
        })
    };
    assert!(
        exercise(&site(|_| {}), &objects()),
        "a site of zeros is fine"
    );
    for (row, message, change) in [
        (
            "of no instruction",
            "instruction 1 of 1",
            (|site| site.position = 1) as fn(&mut Site),
        ),
        ("of no file", "malformed run", |site| {
            site.place.source = U32::new(1);
        }),
        ("without its path", "malformed run", |site| {
            site.path = SitePathId(0);
        }),
        ("without its part", "outside of the pool", |site| {
            site.label.part.offset = U32::new(u32::MAX);
        }),
        ("without its text", "outside of the pool", |site| {
            site.label.written.length = U32::new(1_000);
        }),
    ] {
        refused(&format!("row 6, a site {row}"), message, &site(change));
    }
    for (row, message, change) in [
        (
            "too few",
            "0 places of 1 rules",
            (|builder| builder.rule_places.clear()) as Change,
        ),
        ("too many", "2 places of 1 rules", |builder| {
            builder.rule_places.push(Place::new_zeroed());
        }),
        ("of entries", "1 places of 0 context entries", |builder| {
            builder.entry_places.push(Place::new_zeroed());
        }),
        ("of labels", "1 places of 0 tag entries", |builder| {
            builder.tag_places.push(SitePlace::new_zeroed());
        }),
        ("in no file", "source 7 of 1", |builder| {
            builder.rule_places[0].source = U32::new(7);
        }),
    ] {
        let bytes = bundle_with(vec![Instruction::new(Op::ReturnPass)], change);
        refused(&format!("row 6, places {row}"), message, &bytes);
    }
}

/// Row 6 on the packed sites of a real bundle: what is not refused can be read.
#[test]
fn packed_sites() {
    let bytes = compile_policies(&policy_with_pattern("{spec: {x: ok}}")).unwrap();
    let names = Bundle::load(bytes.as_slice()).unwrap().section_sizes();
    let number = names.iter().position(|&(name, _)| name == "sites").unwrap();
    let entry = SECTION_TABLE + number * SECTION_ENTRY;
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let section = word(entry + 4)..word(entry + 4) + word(entry + 8);
    assert!(!section.is_empty());
    for at in section {
        for value in [0u8, 1, 2, 10, 127, 128, 255] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            exercise(&seal(wrong), &objects());
        }
    }
}

/// Row 9 and row 11 on the bytes: the index and the pool of a real bundle.
#[test]
fn index_and_pool() {
    let bytes = compile_policies(&policy_with_pattern("{spec: {x: ok}}")).unwrap();
    let section = |number: usize| {
        let entry = SECTION_TABLE + number * SECTION_ENTRY;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        word(entry + 4)..word(entry + 4) + word(entry + 8)
    };
    // Numbers of sections: 1 pool, 24 index, 25 rules of the index.
    for number in [24, 25] {
        for at in section(number) {
            for value in [0u8, 1, 2, 255] {
                let mut wrong = bytes.clone();
                if std::mem::replace(&mut wrong[at], value) != value {
                    refused("row 9", "malformed", &seal(wrong));
                }
            }
        }
    }
    let mut wrong = bytes.clone();
    wrong[section(1).start] = 0xff;
    refused("row 11", "UTF-8", &seal(wrong));
}

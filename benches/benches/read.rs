//! Reading a 7 KB Pod (as the API server sends it, managedFields and status
//! included): kpvm's reader beside simd-json's tape and serde_json's tree.
//!
//! `cargo bench -p kpvm-bench --bench read` first prints the ratio of the reader
//! to `simd_json::to_tape`, taken in turns so that a busy machine hits both alike;
//! criterion's own figures follow.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kpvm::document::{DocumentBuffer, ReadOptions, TextSource};
use kpvm_format::symbol::{SymbolTable, SymbolTableBuilder};

const POD: &[u8] = include_bytes!("../../corpus/bench/pod-7k.json");

/// Keys that the rules of a usual policy set look at; the Pod has many others.
const SYMBOLS: &str = "apiVersion kind metadata name namespace generateName labels \
    annotations ownerReferences controller uid spec status template jobTemplate containers \
    initContainers ephemeralContainers image imagePullPolicy imagePullSecrets env envFrom value \
    valueFrom secretKeyRef configMapKeyRef ports containerPort hostPort protocol resources limits \
    requests cpu memory ephemeral-storage livenessProbe readinessProbe startupProbe httpGet port \
    securityContext privileged allowPrivilegeEscalation runAsNonRoot runAsUser runAsGroup fsGroup \
    supplementalGroups readOnlyRootFilesystem capabilities add drop seccompProfile seLinuxOptions \
    type localhostProfile procMount windowsOptions hostProcess sysctls hostNetwork hostPID hostIPC \
    volumes hostPath emptyDir configMap secret projected sources volumeMounts mountPath readOnly \
    serviceAccountName automountServiceAccountToken tolerations key operator effect nodeSelector \
    affinity topologySpreadConstraints priorityClassName restartPolicy replicas strategy selector \
    matchLabels rules host http paths backend service tls data stringData subjects roleRef verbs \
    apiGroups app.kubernetes.io/name app.kubernetes.io/part-of request object oldObject operation";

fn symbols() -> Vec<u8> {
    let mut builder = SymbolTableBuilder::new();
    for name in SYMBOLS.split_whitespace() {
        builder.intern(name);
    }
    builder.finish()
}

/// Reads `text` `times` times with kpvm.
fn time_kpvm(text: &[u8], symbols: &SymbolTable<'_>, times: u32) -> Duration {
    let mut buffer = DocumentBuffer::new();
    let options = ReadOptions::default();
    let start = Instant::now();
    for _ in 0..times {
        buffer.clear();
        let root = buffer.read_json(black_box(text), TextSource::Object, symbols, &options);
        black_box(root.expect("the Pod is JSON"));
    }
    start.elapsed()
}

/// The same with `simd_json::to_tape`, which changes its input and so needs a copy
/// each time (some 50 ns for 7 KB).
fn time_simd_json(text: &[u8], times: u32) -> Duration {
    let mut copy = text.to_vec();
    let start = Instant::now();
    for _ in 0..times {
        copy.copy_from_slice(black_box(text));
        black_box(simd_json::to_tape(&mut copy).expect("the Pod is JSON"));
    }
    start.elapsed()
}

/// The same with simd-json's buffers and tape kept.
fn time_simd_json_kept(text: &[u8], times: u32) -> Duration {
    let mut copies = vec![text.to_vec(); times as usize];
    let mut buffers = simd_json::Buffers::new(text.len());
    let mut tape = simd_json::Tape::null();
    let start = Instant::now();
    for copy in &mut copies {
        simd_json::fill_tape(black_box(copy), &mut buffers, &mut tape).expect("the Pod is JSON");
        black_box(&tape);
    }
    start.elapsed()
}

fn print_ratio(name: &str, text: &[u8], symbols: &SymbolTable<'_>) {
    const ROUNDS: usize = 40;
    const TIMES: u32 = 250;
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        times[0].push(time_kpvm(text, symbols, TIMES));
        times[1].push(time_simd_json(text, TIMES));
        times[2].push(time_simd_json_kept(text, TIMES));
    }
    let [kpvm, tape, kept] = times.map(|mut rounds| {
        rounds.sort();
        rounds[ROUNDS / 2].as_secs_f64() * 1e6 / f64::from(TIMES)
    });
    println!(
        "{name}, {} bytes, medians: kpvm {kpvm:.2} us, simd_json::to_tape {tape:.2} us \
         (ratio {:.2}), simd_json::fill_tape {kept:.2} us (ratio {:.2})",
        text.len(),
        kpvm / tape,
        kpvm / kept,
    );
}

fn indented() -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(POD).expect("the Pod is JSON");
    serde_json::to_vec_pretty(&value).expect("values can be written")
}

fn read(criterion: &mut Criterion) {
    let bytes = symbols();
    let symbols = SymbolTable::verify(&bytes).expect("a fresh table verifies");
    let pretty = indented();
    print_ratio("pod", POD, &symbols);
    print_ratio("pod, indented", &pretty, &symbols);

    let mut group = criterion.benchmark_group("read-pod");
    group.throughput(Throughput::Bytes(POD.len() as u64));
    let mut buffer = DocumentBuffer::new();
    let options = ReadOptions::default();
    group.bench_function("kpvm", |bencher| {
        bencher.iter(|| {
            buffer.clear();
            buffer
                .read_json(black_box(POD), TextSource::Object, &symbols, &options)
                .expect("the Pod is JSON")
        });
    });
    let mut copy = POD.to_vec();
    group.bench_function("simd-json-to-tape", |bencher| {
        bencher.iter(|| {
            copy.copy_from_slice(black_box(POD));
            simd_json::to_tape(&mut copy)
                .expect("the Pod is JSON")
                .0
                .len()
        });
    });
    group.bench_function("serde-json-value", |bencher| {
        bencher.iter(|| {
            serde_json::from_slice::<serde_json::Value>(black_box(POD)).expect("the Pod is JSON")
        });
    });
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);

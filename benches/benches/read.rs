//! Reading a 7 KB Pod (as sent by the API server, with managedFields and status): kpvm's
//! reader compared with simd-json's tape.
//!
//! `cargo bench -p kpvm-bench --bench read` prints the ratio of the reader to
//! `simd_json::to_tape`, for one Pod and for many different ones (which branch predictors
//! cannot memorise), in turns so that a busy machine affects both alike.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use kpvm::document::{DocumentBuffer, ReadOptions, TextSource};
use kpvm_bench::interleave::{medians, time};
use kpvm_bench::workload::{POD, different_pods};
use kpvm_format::symbol::{SymbolTable, SymbolTableBuilder};

/// Keys read by the rules of a typical policy set; the Pod has many others.
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

/// Reads every text once with kpvm.
fn time_kpvm(
    texts: &[Vec<u8>],
    symbols: &SymbolTable<'_>,
    buffer: &mut DocumentBuffer,
) -> Duration {
    let options = ReadOptions::default();
    time(|| {
        for text in texts {
            buffer.clear();
            let root = buffer.read_json(black_box(text), TextSource::Object, symbols, &options);
            black_box(root.expect("the Pod is JSON"));
        }
    })
}

/// The same with `simd_json::to_tape`. It modifies its input, so copies are made before the
/// measurement.
fn time_simd_json(texts: &[Vec<u8>]) -> Duration {
    let mut copies = texts.to_vec();
    time(|| {
        for copy in &mut copies {
            black_box(simd_json::to_tape(black_box(copy)).expect("the Pod is JSON"));
        }
    })
}

/// The same with reused buffers and tape of simd-json.
fn time_simd_json_kept(texts: &[Vec<u8>], buffers: &mut simd_json::Buffers) -> Duration {
    let mut copies = texts.to_vec();
    let mut tape = simd_json::Tape::null();
    time(|| {
        for copy in &mut copies {
            simd_json::fill_tape(black_box(copy), buffers, &mut tape).expect("the Pod is JSON");
            black_box(&tape);
        }
    })
}

fn print_ratio(name: &str, texts: &[Vec<u8>], symbols: &SymbolTable<'_>) {
    let mut buffer = DocumentBuffer::new();
    let mut buffers = simd_json::Buffers::new(texts.iter().map(Vec::len).max().unwrap_or(0));
    let [kpvm, tape, kept] = medians(
        texts.len(),
        [
            &mut |turn| time_kpvm(&texts[turn], symbols, &mut buffer),
            &mut |turn| time_simd_json(&texts[turn]),
            &mut |turn| time_simd_json_kept(&texts[turn], &mut buffers),
        ],
    );
    println!(
        "{name}, {} bytes, medians: kpvm {kpvm:.2} us, simd_json::to_tape {tape:.2} us \
         (ratio {:.2}), simd_json::fill_tape {kept:.2} us (ratio {:.2})",
        texts.iter().map(Vec::len).sum::<usize>() / texts.len(),
        kpvm / tape,
        kpvm / kept,
    );
}

fn indented() -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(POD).expect("the Pod is JSON");
    serde_json::to_vec_pretty(&value).expect("values can be written")
}

fn main() {
    let bytes = symbols();
    let symbols = SymbolTable::verify(&bytes).expect("a fresh table verifies");
    let pretty = indented();
    print_ratio("one pod", &vec![POD.to_vec(); 250], &symbols);
    print_ratio("one pod, indented", &vec![pretty; 250], &symbols);
    print_ratio("different pods", &different_pods(POD, 250), &symbols);
}

//! A buffer that has reached its working size reads JSON without allocating.

use kpvm::document::{DocumentBuffer, ReadOptions, TextSource};
use kpvm_format::symbol::{SymbolTable, SymbolTableBuilder};

#[test]
fn the_second_reading_of_an_input_allocates_nothing() {
    let mut builder = SymbolTableBuilder::new();
    for name in ["metadata", "name", "spec", "containers", "image"] {
        builder.intern(name);
    }
    let bytes = builder.finish();
    let symbols = SymbolTable::verify(&bytes).expect("a fresh table verifies");
    let pod: &[u8] = include_bytes!("../../../corpus/bench/pod-7k.json");
    let members: Vec<String> = (0..1000)
        .map(|index| format!("\"k\\u0065y{}\":{index}", index % 300))
        .collect();
    let duplicates = format!("{{{}}}", members.join(","));

    let mut buffer = DocumentBuffer::new();
    let mut read_all = || {
        buffer.clear();
        for (text, source) in [
            (pod, TextSource::Object),
            (duplicates.as_bytes(), TextSource::OldObject),
            (pod, TextSource::Scratch),
            (b"[{\"a\":[1,2,".as_slice(), TextSource::Scratch),
        ] {
            let complete = !text.ends_with(b",");
            let result = buffer.read_json(text, source, &symbols, &ReadOptions::default());
            assert_eq!(result.is_ok(), complete);
        }
    };
    let first = allocation_counter::measure(&mut read_all);
    assert!(first.count_total > 0, "the counter counts");
    let second = allocation_counter::measure(&mut read_all);
    assert_eq!(second.count_total, 0);
}

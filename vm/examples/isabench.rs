//! bundle pod plan(0/1) reps
use kpvm::engine::{Bundle, Input, Request, Session};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&a[1]).unwrap();
    let pod = std::fs::read(&a[2]).unwrap();
    let bundle = Bundle::load(&bytes[..]).unwrap();
    let mut session = Session::new(&bundle);
    session.set_plan(a[3] == "1");
    let mut n = 0;
    for _ in 0..a[4].parse::<usize>().unwrap() {
        let e = session
            .evaluate(&Request::create(Input::Json(&pod)))
            .unwrap();
        n += e.responses().count();
    }
    println!("{n}");
}

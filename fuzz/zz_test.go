package fuzz_test
import ("testing";"context"
"github.com/pi-conform/pi-conform/fuzz";"github.com/pi-conform/pi-conform/harness";"github.com/pi-conform/pi-conform/harness/trace";"github.com/pi-conform/pi-conform/adapters/reference";"github.com/pi-conform/pi-conform/conformance")
func BenchmarkParts(b *testing.B){
 d:=reference.New(); rules:=conformance.Catalogue(); ctx:=context.Background()
 sc:=func(i int)*harness.Scenario{return fuzz.Scenario(fuzz.NewSeeded(uint64(i%500)),"0.84.3",fuzz.Usual())}
 b.Run("gen",func(b *testing.B){for i:=range b.N{sc(i)}})
 var scs []*harness.Scenario; var trs []*trace.Trace
 n:=0
 for i:=range 500{s:=sc(i);scs=append(scs,s);r,_:=harness.Run(ctx,d,s,harness.NewRandom(uint64(i)),harness.Limits{});trs=append(trs,r.Trace);n+=len(r.Schedule)}
 b.Log("avg steps",n/500)
 b.Run("run",func(b *testing.B){b.ReportAllocs();for i:=range b.N{harness.Run(ctx,d,scs[i%500],harness.NewRandom(uint64(i)),harness.Limits{})}})
 b.Run("check",func(b *testing.B){b.ReportAllocs();for i:=range b.N{conformance.Check(trs[i%500],rules)}})
 b.Run("hash",func(b *testing.B){b.ReportAllocs();for i:=range b.N{trace.Hash(trs[i%500])}})
 b.Run("normalize",func(b *testing.B){b.ReportAllocs();for i:=range b.N{trace.Normalize(trs[i%500])}})
}

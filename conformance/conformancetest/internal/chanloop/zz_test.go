package chanloop_test
import ("testing";"context";"fmt"
"github.com/pi-conform/pi-conform/conformance/conformancetest/internal/chanloop"
"github.com/pi-conform/pi-conform/conformance/suite"
"github.com/pi-conform/pi-conform/conformance"
"github.com/pi-conform/pi-conform/harness"
"github.com/pi-conform/pi-conform/harness/bubble"
)
func TestZZ(t *testing.T){
 cs,_:=suite.Cases()
 s:=chanloop.Subject(chanloop.SelectRace)
 d:=&bubble.Driver{Join:s.Join, About: harness.SubjectInfo{Name:"x",Capabilities:[]string{"forms:agent","hooks:none"}}}
 for _,c:=range cs { if c.Name!="updates/while-sibling-runs" {continue}
  n:=0
  for range 200 { rec,err:=harness.RunCase(context.Background(),d,c.Case,harness.Limits{}); if err!=nil {t.Fatal(err)}
   for _,f:=range conformance.Check(rec.Trace,conformance.Catalogue()).Findings { if f.Rule=="UPD-2" {n++} } }
  fmt.Println("found",n,"of 200")
 }
}

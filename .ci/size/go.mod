// A path below Plait's, as that of the other commands here. It is never tagged, and requires nothing.
module github.com/plait-dev/plait/size

go 1.26.0

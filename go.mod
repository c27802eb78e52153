module github.com/openarkstudio/arknet-go

go 1.26.0

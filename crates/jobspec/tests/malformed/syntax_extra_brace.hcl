job "web" {
}
}

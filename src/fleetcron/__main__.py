from fleetcron.cli import main

main()
